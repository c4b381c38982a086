"""Users who ask for one page again and again."""

from locust import HttpUser, constant, task


class User(HttpUser):
    wait_time = constant(0)

    @task
    def page(self):
        self.client.get("/")
